/// The section `log`.
package struct LogSettings: Hashable, Sendable {
    package enum Level: String, Hashable, Sendable, CaseIterable {
        case trace
        case debug
        case info
        case notice
        case warning
        case error
    }

    package enum Format: String, Hashable, Sendable, CaseIterable {
        /// Journald under systemd, text on a terminal, else JSON lines.
        case auto
        case text
        case json
        case journald
    }

    package var level = Level.info
    package var format = Format.auto

    package init() {}
}
