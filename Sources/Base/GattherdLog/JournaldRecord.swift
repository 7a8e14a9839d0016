/// One entry as journald's fields, for `sd_journal_sendv`.
///
/// `MESSAGE` is the line that people read; each datum is a field of its own as well, so that
/// `journalctl GATTHERD_DEVICE=strap` finds it.
public struct JournaldRecord: Hashable, Sendable {
    /// `NAME=value` each, as octets; a value may hold anything.
    public let fields: [[UInt8]]

    /// - Parameters:
    ///   - entry: What is told.
    ///   - time: When it was; journald's own time is that of the telling.
    public init(_ entry: LogEntry, time: String) {
        let fixed = [
            "MESSAGE=" + LogLine.sentence(entry), "PRIORITY=\(entry.level.syslog)", "SYSLOG_IDENTIFIER=gattherd",
            "GATTHERD_LEVEL=\(entry.level)", "GATTHERD_EVENT=" + entry.message, "GATTHERD_TIME=" + time,
        ]
        fields = (fixed + entry.fields.map { "GATTHERD_\(Self.name($0.key))=\($0.value)" }).map { Array($0.utf8) }
    }

    /// journald takes capital letters, digits and underscores only.
    private static func name(_ key: String) -> String {
        String(key.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}
