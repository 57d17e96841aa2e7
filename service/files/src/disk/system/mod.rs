//! Where systems differ: one name for each thing, done the Linux way (`linux.rs`) or the way of the others
//! (`elsewhere.rs`, in the first place macOS). Both files hold the same names; nothing outside this folder asks which
//! system it is.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as here;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as here;

pub(super) use here::{
    NAME_ONLY, data_from, is_generated, keeps_all_names, link_nameless, nameless, open_by_kernel,
    opens_by_kernel, path_of, rename_no_replace, swap, sync, take_room,
};
