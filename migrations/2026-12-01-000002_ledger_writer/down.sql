ALTER TABLE top_up DROP CONSTRAINT top_up_transfer_id_fkey,
    ADD CONSTRAINT top_up_transfer_id_fkey FOREIGN KEY (transfer_id) REFERENCES transfer (id);
CREATE INDEX charge_fee_account ON charge (fee_account);
CREATE INDEX charge_tax_account ON charge (tax_account);
DROP INDEX transfer_batch, charge_batch;
ALTER TABLE charge DROP COLUMN batch,
    ADD FOREIGN KEY (wallet) REFERENCES account (id),
    ADD FOREIGN KEY (earned) REFERENCES account (id),
    ADD FOREIGN KEY (fee_account) REFERENCES account (id),
    ADD FOREIGN KEY (tax_account) REFERENCES account (id);
ALTER TABLE transfer DROP COLUMN batch,
    ADD FOREIGN KEY (debit) REFERENCES account (id),
    ADD FOREIGN KEY (credit) REFERENCES account (id);
DROP TABLE ledger_day, batch, writer;
-- Refused while a hot account has more than one stripe: their sums would have to be folded first.
ALTER TABLE account DROP CONSTRAINT account_once, DROP COLUMN stripe, DROP COLUMN version,
    ADD CONSTRAINT account_once UNIQUE (ledger, code, owner);
