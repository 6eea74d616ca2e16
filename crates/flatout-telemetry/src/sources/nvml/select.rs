//! Which of the driver's devices are in scope.

use super::NvmlProblem;
use crate::scope::{GpuName, GpuScope};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

pub struct Selection<'nvml> {
    pub devices: Vec<Chosen<'nvml>>,
    /// What the scope named and the driver does not show, for `run.json`.
    pub notes: Vec<String>,
}

pub struct Chosen<'nvml> {
    pub index: u32,
    pub device: Device<'nvml>,
    /// For a MIG slice: the whole GPU, which knows power, clocks and temperature.
    pub whole: Option<Device<'nvml>>,
}

pub fn select<'nvml>(nvml: &'nvml Nvml, scope: &GpuScope) -> Result<Selection<'nvml>, NvmlProblem> {
    let failed = |error: NvmlError| NvmlProblem::Failed {
        detail: error.to_string(),
    };
    let count = nvml.device_count().map_err(failed)?;
    if count == 0 {
        return Err(NvmlProblem::NoGpus);
    }
    let Some(wanted) = scope.wanted.as_deref() else {
        return all(nvml, count);
    };
    // Inside a container or a Slurm cgroup the driver shows only the job's GPUs and numbers them from 0, while the
    // variable has the host's numbers. As many shown as named: these are they.
    let names_the_hosts = scope.origin != Some("CUDA_VISIBLE_DEVICES") && !scope.is_explicit();
    if names_the_hosts && wanted.len() == count as usize {
        return all(nvml, count);
    }
    let mut selection = Selection {
        devices: Vec::new(),
        notes: Vec::new(),
    };
    for name in wanted {
        match find(nvml, count, name) {
            Some(chosen) if selection.devices.iter().any(|known| known.index == chosen.index) => {}
            Some(chosen) => selection.devices.push(chosen),
            None if scope.is_explicit() => {
                return Err(NvmlProblem::GpuNotThere {
                    name: name.clone(),
                    count,
                });
            }
            None => {
                let origin = scope.origin.unwrap_or_default();
                selection.notes.push(format!(
                    "gpu: {origin} names {name}, which the driver does not show"
                ));
            }
        }
    }
    if selection.devices.is_empty() && names_the_hosts {
        let mut everything = all(nvml, count)?;
        everything.notes.append(&mut selection.notes);
        return Ok(everything);
    }
    Ok(selection)
}

fn all(nvml: &Nvml, count: u32) -> Result<Selection<'_>, NvmlProblem> {
    let mut devices = Vec::new();
    let mut notes = Vec::new();
    for index in 0..count {
        match nvml.device_by_index(index) {
            Ok(device) => devices.push(Chosen {
                index,
                device,
                whole: None,
            }),
            Err(error) => notes.push(format!("gpu {index}: {error}")),
        }
    }
    if devices.is_empty() {
        return Err(NvmlProblem::Failed {
            detail: notes.join("; "),
        });
    }
    Ok(Selection { devices, notes })
}

fn find<'nvml>(nvml: &'nvml Nvml, count: u32, name: &GpuName) -> Option<Chosen<'nvml>> {
    match name {
        GpuName::Index(index) => {
            let device = (*index < count).then(|| nvml.device_by_index(*index).ok())??;
            Some(Chosen {
                index: *index,
                device,
                whole: None,
            })
        }
        // CUDA takes a beginning of the UUID for the whole, so the driver's look-up alone is not enough.
        GpuName::Uuid(beginning) => (0..count).find_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            let found = device.uuid().ok()?.starts_with(beginning.as_str());
            found.then_some(Chosen {
                index,
                device,
                whole: None,
            })
        }),
        GpuName::Mig(uuid) => {
            let device = nvml.device_by_uuid(uuid.as_str()).ok()?;
            let whole = device.mig_parent_device().ok()?;
            Some(Chosen {
                index: whole.index().ok()?,
                device,
                whole: Some(whole),
            })
        }
    }
}
