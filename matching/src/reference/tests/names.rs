//! Which model a row means.

use super::*;

#[test]
fn names_are_refined_by_instance_and_memory() {
    for (row, model) in [
        (
            "vast,1x-RTX_3060_Ti-32-65536,RTX3060,1,8192,32,64.0,0.16,,CA,,6",
            "rtx-3060-ti",
        ),
        (
            "vast,4x-RTX_4060_Ti-32-65536,RTX4060,4,16380,32,64.0,0.29,,CA,,6",
            "rtx-4060-ti-16gb",
        ),
        (
            "vast,4x-RTX_4070S_Ti-32-65536,RTX4070,4,16376,32,64.0,0.77,,CA,,6",
            "rtx-4070-ti-super",
        ),
        (
            "vast,1x-H100_NVL-32-65536,H100,1,95830,32,64.0,1.98,,CA,,6",
            "h100-nvl-94gb",
        ),
        (
            "vast,1x-A100_SXM4-32-65536,A100,1,81920,32,64.0,0.93,,CA,,6",
            "a100-sxm4-80gb",
        ),
        (
            "vast,2x-A100_PCIE-32-65536,A100,2,40960,32,64.0,1.33,,CA,,6",
            "a100-pcie-40gb",
        ),
        (
            "lambda,gpu_1x_h100_pcie,H100,1.0,81920,26.0,200.0,3.29,,us,,6",
            "h100-pcie-80gb",
        ),
        (
            "azure,Standard_NC40ads_H100_v5,H100,1,,40,320,6.98,2.19,eastus,,6",
            "h100-nvl-94gb",
        ),
        (
            "azure,Standard_NC24ads_A100_v4,A100-80GB,1,,24,220,3.673,,eastus,,6",
            "a100-pcie-80gb",
        ),
        (
            "azure,Standard_NC6s_v3,V100,1,,6,112,3.06,0.56,eastus,,6",
            "v100-pcie-16gb",
        ),
        (
            "aws,p4de.24xlarge,a100,8,81920,96,1152.0,27.44705,,us-east-1,,1",
            "a100-sxm4-80gb",
        ),
    ] {
        let (read, _, seen) = one(row);
        assert_eq!(
            (read.as_str(), seen.as_slice()),
            (model, [Fault::ModelRefined].as_slice()),
            "{row}"
        );
    }
}

#[test]
fn names_that_are_right_stay() {
    for (row, model) in [
        (
            "fluidstack,H100_NVLINK_80GB::8,H100-NVLINK,8,81920,252,1440,23.92,,FINLAND,,2",
            "h100-sxm-80gb",
        ),
        (
            "lambda,gpu_8x_h100_sxm5,H100,8.0,81920,208.0,1800.0,31.92,,us,,6",
            "h100-sxm-80gb",
        ),
        ("aws,g6.xlarge,l4,1,22888,4,16.0,0.8048,,us-east-1,,1", "l4"),
    ] {
        let (read, _, seen) = one(row);
        assert_eq!(
            (read.as_str(), seen.as_slice()),
            (model, [].as_slice()),
            "{row}"
        );
    }
}
