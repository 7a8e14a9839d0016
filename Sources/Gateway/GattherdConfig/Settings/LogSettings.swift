/// The section `log`.
public struct LogSettings: Hashable, Sendable {
    public enum Level: String, Hashable, Sendable, CaseIterable {
        case trace
        case debug
        case info
        case notice
        case warning
        case error
    }

    public enum Format: String, Hashable, Sendable, CaseIterable {
        /// journald under systemd, text on a terminal, else JSON lines.
        case auto
        case text
        case json
        case journald
    }

    public var level = Level.info
    public var format = Format.auto

    public init() {}
}
