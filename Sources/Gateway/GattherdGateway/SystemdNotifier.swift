import CSystemd
import GattherdSync

/// What systemd is told, where it started us (`Type=notify`); nothing elsewhere.
enum SystemdNotifier {
    /// - Parameter status: One line that `systemctl status` shows.
    static func ready(_ status: String) {
        let line = status.split(whereSeparator: \.isNewline).joined(separator: " ")
        tell("READY=1\nSTATUS=\(line)")
    }

    /// Until ``ready()``.
    static func reloading() { tell("RELOADING=1\nMONOTONIC_USEC=\(SystemClock.monotonic)") }

    static func stopping() { tell("STOPPING=1") }

    /// Tells that we are alive, after each `pulse` and as often as `WatchdogSec=` demands, until cancelled.
    ///
    /// Returns at once where nobody wants to hear it. While a pulse does not come back nothing is told, and systemd ends
    /// and restarts us.
    static func watch(_ pulse: () async -> Void) async {
        var limit: UInt64 = 0
        guard unsafe sd_watchdog_enabled(0, &limit) > 0 else { return }
        while (try? await Task.sleep(for: .microseconds(limit / 3), clock: .loop)) != nil {
            await pulse()
            tell("WATCHDOG=1")
        }
    }

    private static func tell(_ state: String) { _ = unsafe sd_notify(0, state) }
}
