ALTER TABLE lease DROP COLUMN disk_gib;
ALTER TABLE charge
    DROP CONSTRAINT charge_segment_known,
    DROP COLUMN segment,
    ADD CONSTRAINT charge_meter_id_fkey FOREIGN KEY (meter_id) REFERENCES meter (id);
ALTER TABLE meter
    DROP COLUMN segment,
    DROP COLUMN segments,
    DROP COLUMN rem_num,
    DROP COLUMN skew_ms;
DROP TABLE meter_segment;
