/// A log entry as journald fields, for `sd_journal_sendv`.
///
/// `MESSAGE` is the whole line. Each field is a journald field as well, so that
/// `journalctl GATTHERD_DEVICE=strap` finds it.
public struct JournaldRecord: Hashable, Sendable {
    /// The fields as bytes, `NAME=value` each; a value may contain any bytes.
    public let fields: [[UInt8]]

    /// - Parameters:
    ///   - entry: The log entry.
    ///   - time: The time of the entry; journald records the time of writing.
    public init(_ entry: LogEntry, time: String) {
        let fixed = [
            "MESSAGE=" + LogLine.sentence(entry), "PRIORITY=\(entry.level.syslog)", "SYSLOG_IDENTIFIER=gattherd",
            "GATTHERD_LEVEL=\(entry.level)", "GATTHERD_EVENT=" + entry.message, "GATTHERD_TIME=" + time,
        ]
        fields = (fixed + entry.fields.map { "GATTHERD_\(Self.name($0.key))=\($0.value)" }).map { Array($0.utf8) }
    }

    /// Returns a valid name of a journald field: capital letters, digits and underscores.
    private static func name(_ key: String) -> String {
        String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}
