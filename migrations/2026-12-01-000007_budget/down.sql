DROP TABLE budget_alert, budget;
ALTER TABLE lease DROP COLUMN booked_by;
