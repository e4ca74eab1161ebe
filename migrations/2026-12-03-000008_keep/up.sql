-- A stopped lease may keep its GPUs for a resume, at a price of the offer; without one, at the price of use.
ALTER TABLE offer ADD COLUMN keep_gpu_hour bigint CHECK (keep_gpu_hour >= 0);
ALTER TABLE offer ADD CONSTRAINT offer_keep_within_price CHECK (keep_gpu_hour <= gpu_hour);

-- Quotes are firm: the price is written into each.
ALTER TABLE quote ADD COLUMN keep_gpu_hour bigint;
UPDATE quote SET keep_gpu_hour = gpu_hour;
ALTER TABLE quote ALTER COLUMN keep_gpu_hour SET NOT NULL;
ALTER TABLE quote ADD CONSTRAINT quote_keep_within_price CHECK (keep_gpu_hour BETWEEN 0 AND gpu_hour);

ALTER TABLE lease ADD COLUMN keeps_gpus boolean NOT NULL DEFAULT false;
ALTER TABLE lease ADD CONSTRAINT lease_keeps_while_stopped
    CHECK (NOT keeps_gpus OR state IN ('stopping', 'stopped', 'resuming'));
