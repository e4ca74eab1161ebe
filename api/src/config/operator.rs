//! Who the operator is on invoices, and the table of tax rules.

use std::path::Path;

use billing::invoice::Identity;
use billing::tax_rule::{TaxRules, TaxTable, is_country};

use super::{Faults, Raw};

/// The operator as documents show it.
pub(super) fn identity(faults: &mut Faults<'_>, raw: &Raw) -> Identity {
    let text = |name: &str, in_file: &Option<String>| {
        let found = (faults.variable)(name).or_else(|| in_file.clone());
        found.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
    };
    let name = text("OPERATOR_NAME", &raw.operator_name);
    let address = text("OPERATOR_ADDRESS", &raw.operator_address).unwrap_or_default();
    let country = text("OPERATOR_COUNTRY", &raw.operator_country);
    let vat_id = text("OPERATOR_VAT_ID", &raw.operator_vat_id);
    if let Some(bad) = country.as_ref().filter(|c| !is_country(c)) {
        let told = format!("GPUMARKET_OPERATOR_COUNTRY: `{bad}` is not two capital letters");
        faults.add(told);
    }
    let lines = address.split(';').map(str::trim).filter(|l| !l.is_empty());
    Identity {
        name: name.unwrap_or_else(|| "gpumarket".to_owned()),
        address: lines.map(str::to_owned).collect(),
        country,
        vat_id,
    }
}

/// The table of a file; without one, `otherwise_bps` for everybody.
pub(super) fn tax(faults: &mut Faults<'_>, raw: &Raw, otherwise_bps: u32) -> TaxTable {
    let file = (faults.variable)("TAX_RULES").or_else(|| raw.tax_rules.clone());
    let Some(file) = file else {
        return TaxTable::flat(otherwise_bps);
    };
    read(Path::new(&file), otherwise_bps).unwrap_or_else(|fault| {
        faults.add(format!("GPUMARKET_TAX_RULES: {file}: {fault}"));
        TaxTable::flat(otherwise_bps)
    })
}

fn read(file: &Path, otherwise_bps: u32) -> Result<TaxTable, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let rules: TaxRules = toml::from_str(&text).map_err(|e| e.to_string())?;
    TaxTable::new(otherwise_bps, &rules).map_err(|e| e.to_string())
}
