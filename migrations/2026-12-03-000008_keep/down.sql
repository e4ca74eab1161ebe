ALTER TABLE lease DROP COLUMN keeps_gpus;
ALTER TABLE quote DROP COLUMN keep_gpu_hour;
ALTER TABLE offer DROP COLUMN keep_gpu_hour;
