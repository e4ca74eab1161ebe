DROP TABLE dispute, payout, maturing, adjustment, credit_use, credit;
UPDATE account SET constrained = false WHERE code = 230;
