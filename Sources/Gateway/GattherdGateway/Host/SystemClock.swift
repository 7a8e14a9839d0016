import CLinux
import FoundationEssentials
import GattherdDaemon
package import GattherdHistory
package import GattherdModel
import GattherdSync
import Glibc

/// The system's clocks.
package enum SystemClock {
    /// The system's time in UTC.
    package static var now: Timestamp {
        Timestamp(microseconds: WallClock.microseconds)
    }

    /// 2026-11-01, the date of this version: an earlier time is certainly wrong.
    ///
    /// Update it with each version. The date of the executable is no substitute: a wrong clock may have set it.
    private static let written = Timestamp(microseconds: 1_793_491_200_000_000)

    /// The clock for history.
    package static var gateway: GatewayClock {
        let boot = FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id") ?? Data()
        var clock = GatewayClock(
            now: { now },
            uptime: { uptime },
            isSynchronised: { clinux_is_clock_synchronised() },
            boot: String(decoding: boot.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        )
        clock.earliest = written
        return clock
    }

    /// The clock for stored records.
    static var records: RecordClock {
        let gateway = gateway
        return RecordClock(boot: gateway.boot, now: gateway.now, uptime: gateway.uptime)
    }

    /// The time since boot, including sleep.
    static var uptime: Duration { .microseconds(microseconds(of: CLOCK_BOOTTIME)) }

    /// Microseconds since boot without suspend, which is systemd's monotonic time.
    package static var monotonic: Int64 { microseconds(of: CLOCK_MONOTONIC) }

    private static func microseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
