//! What this machine is and lets us do, where no file of the kernel's tells: the hypervisor, and io_uring.

pub use crate::system::facility::io_uring;

/// How the hypervisor calls itself (`KVMKVMKVM`, `Microsoft Hv`, `VMwareVMware`), asked of the processor. `None` where
/// the processor says that there is none, or cannot be asked (not x86-64).
#[must_use]
pub fn hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        /// CPUID leaf 1, ECX: "a hypervisor is present", which no processor sets by itself.
        const PRESENT: u32 = 1 << 31;
        if cpuid(1).ecx & PRESENT == 0 {
            return None;
        }
        let answer = cpuid(0x4000_0000);
        let signature: Vec<u8> =
            [answer.ebx, answer.ecx, answer.edx].into_iter().flat_map(u32::to_le_bytes).collect();
        let signature = String::from_utf8_lossy(&signature).trim_matches(['\0', ' ']).to_owned();
        Some(if signature.is_empty() { "one that gives no name".to_owned() } else { signature })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "safe to call since a later Rust than the oldest that we support")]
fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction, and it changes nothing but the registers of its answer.
    unsafe { std::arch::x86_64::__cpuid(leaf) }
}
