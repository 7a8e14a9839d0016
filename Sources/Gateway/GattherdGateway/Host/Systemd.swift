import CSystemd
package import GattherdConfig
package import GattherdLog
import GattherdModel
import GattherdSync
import Glibc

/// The daemon's log: journald or standard error.
package enum ServiceLog {
    /// The time in which a working journald accepts the last lines.
    private static let flushLimit = Duration.seconds(1)

    /// Runs `body` with the log and its newest entries, then waits up to ``flushLimit`` until everything is written.
    package static func run(
        _ settings: LogSettings,
        _ body: (Log, RecentLog) async throws(GatewayError) -> Void
    ) async throws(GatewayError) {
        let form = LogFormat(settings.format)
        let writer = LogWriter(now: { SystemClock.now.rfc3339 }) { entry, time in
            if case .journald = form, send(JournaldRecord(entry, time: time)) { return }
            entry.writeToStandardError(form, at: time)
        }
        let recent = RecentLog { SystemClock.now.rfc3339 }
        let log = Log.limited(threshold: LogLevel(settings.level)) { entry in
            recent.append(entry)
            writer.enqueue(entry)
        }
        let result: Result<Void, GatewayError>
        do throws(GatewayError) {
            result = .success(try await body(log, recent))
        } catch {
            result = .failure(error)
        }
        await writer.flush(within: flushLimit)
        try result.get()
    }

    /// Sends a record; false without journald.
    private static func send(_ record: JournaldRecord) -> Bool {
        let bytes = record.fields.flatMap(\.self)
        return unsafe bytes.withUnsafeBytes { buffer in
            var start = 0
            var vectors = unsafe [iovec]()
            for field in record.fields {
                let part = unsafe UnsafeMutableRawPointer(mutating: buffer.baseAddress?.advanced(by: start))
                unsafe vectors.append(iovec(iov_base: part, iov_len: field.count))
                start += field.count
            }
            return unsafe sd_journal_sendv(vectors, Int32(vectors.count)) == 0
        }
    }
}

/// Notifications to systemd (`Type=notify`); does nothing without systemd.
enum SystemdNotifier {
    /// Notifies that the daemon is ready, with a line that `systemctl status` shows.
    static func ready(_ status: String) {
        let line = status.split(whereSeparator: \.isNewline).joined(separator: " ")
        notify("READY=1\nSTATUS=\(line)")
    }

    /// Notifies of a reload, until ``ready(_:)``.
    static func reloading() { notify("RELOADING=1\nMONOTONIC_USEC=\(SystemClock.monotonic)") }

    static func stopping() { notify("STOPPING=1") }

    /// Feeds systemd's watchdog until cancelled: after each `roundTrip` through the loops, three times per
    /// `WatchdogSec=`.
    ///
    /// Returns at once without a watchdog. While a round trip hangs, the watchdog is not fed, and systemd restarts the
    /// daemon.
    static func watch(_ roundTrip: () async -> Void) async {
        var limit: UInt64 = 0
        guard unsafe sd_watchdog_enabled(0, &limit) > 0 else { return }
        while (try? await Task.sleep(for: .microseconds(limit / 3), clock: .loop)) != nil {
            await roundTrip()
            notify("WATCHDOG=1")
        }
    }

    private static func notify(_ state: String) { _ = unsafe sd_notify(0, state) }
}
