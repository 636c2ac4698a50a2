SUMMARY = "Measures the real-time latency of Linux and names what causes each delay"
DESCRIPTION = "Workloads and loads, kernel events by BPF or tracefs, the causes of each latency"
HOMEPAGE = "https://example.org/punctual"
BUGTRACKER = "https://example.org/punctual/issues"
SECTION = "devel"
# The program; the BPF objects and the source of QEMU's plugin that it carries as data.
LICENSE = "(MIT | Apache-2.0) & GPL-2.0-only & GPL-2.0-or-later"
LIC_FILES_CHKSUM = "\
    file://LICENSE-APACHE;md5=22a53954e4e0ec258dfce4391e905dac \
    file://LICENSE-MIT;md5=465a604c839b2349a207faf047efbc01 \
"
# It compiles the BPF programs.
DEPENDS = "clang-native"

require ${BPN}-crates.inc

SRC_URI += "git://example.org/punctual;protocol=https;branch=main"
# Until there are releases, the newest.
# nooelint: oelint.vars.autorev
SRCREV = "${AUTOREV}"

inherit cargo systemd

CVE_PRODUCT = "punctual"
SYSTEMD_SERVICE:${PN} = "punctual@.service"
SYSTEMD_AUTO_ENABLE = "disable"

# As ./x build --board: without pages, manual and Parquet.
CARGO_BUILD_FLAGS:append = " --package punctual --no-default-features --features board"

do_install:append() {
    install -d ${D}${systemd_system_unitdir}
    install -m 0644 ${S}/packaging/systemd/punctual@.service ${D}${systemd_system_unitdir}/
}

COMPATIBLE_HOST = "(x86_64|aarch64|arm|riscv64).*-linux"
