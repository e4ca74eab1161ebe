DROP TABLE invoice_line, invoice, invoice_series, billing_profile;
DROP FUNCTION count_by_one;
