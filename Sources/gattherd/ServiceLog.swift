import CSystemd
import GattherdConfig
import GattherdLog
import GattherdModel
import Glibc

/// The daemon's log, where the configuration and its surroundings want it.
enum ServiceLog {
    static func open(_ settings: LogSettings) -> Log {
        let (form, threshold) = (LogForm(settings.format), LogLevel(settings.level))
        guard case .journald = form else {
            return .standardError(form, threshold: threshold, now: { SystemClock.now.rfc3339 })
        }
        return .limited(threshold: threshold) { entry in
            if !send(JournalRecord(entry)) { entry.writeToStandardError(form, at: SystemClock.now.rfc3339) }
        }
    }

    /// False where there is no journald.
    private static func send(_ record: JournalRecord) -> Bool {
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
