import CSystemd
package import GattherdConfig
package import GattherdLog
import GattherdModel
import Glibc

/// The daemon's log: journald or standard error.
package enum ServiceLog {
    /// Runs `body` with the log, then waits up to a second until everything is written.
    package static func run(
        _ settings: LogSettings,
        _ body: (Log) async throws(GatewayError) -> Void
    ) async throws(GatewayError) {
        let form = LogFormat(settings.format)
        let writer = LogWriter(now: { SystemClock.now.rfc3339 }) { entry, time in
            if case .journald = form, send(JournaldRecord(entry, time: time)) { return }
            entry.writeToStandardError(form, at: time)
        }
        let result: Result<Void, GatewayError>
        do throws(GatewayError) {
            result = .success(try await body(.limited(threshold: LogLevel(settings.level), write: writer.enqueue)))
        } catch {
            result = .failure(error)
        }
        await writer.flush(within: .seconds(1))
        try result.get()
    }

    /// Sends a record; false without journald.
    private static func send(_ record: JournaldRecord) -> Bool {
        let octets = record.fields.flatMap(\.self)
        return unsafe octets.withUnsafeBytes { buffer in
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
