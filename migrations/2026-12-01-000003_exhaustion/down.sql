DROP TABLE party_event, wallet_watch;
DROP INDEX hold_due, hold_short;
ALTER TABLE hold DROP COLUMN due_at, DROP COLUMN short, DROP COLUMN warned;
