import CSystemd
import GattherdSync

/// Notifications to systemd (`Type=notify`); does nothing without systemd.
enum SystemdNotifier {
    /// Notifies that the daemon is ready, with a line that `systemctl status` shows.
    static func ready(_ status: String) {
        let line = status.split(whereSeparator: \.isNewline).joined(separator: " ")
        tell("READY=1\nSTATUS=\(line)")
    }

    /// Notifies of a reload, until ``ready(_:)``.
    static func reloading() { tell("RELOADING=1\nMONOTONIC_USEC=\(SystemClock.monotonic)") }

    static func stopping() { tell("STOPPING=1") }

    /// Feeds systemd's watchdog after each `pulse`, three times per `WatchdogSec=`, until cancelled.
    ///
    /// Returns at once without a watchdog. While a pulse hangs, the watchdog is not fed, and systemd restarts the
    /// daemon.
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
