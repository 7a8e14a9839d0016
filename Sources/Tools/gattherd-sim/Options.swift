import GattherdDBus

/// The options and words after the command.
struct Options {
    private(set) var bus: String?
    private(set) var truth: String?
    private(set) var words: [String] = []

    init(_ arguments: some Sequence<String>) throws(ProgramFailure) {
        var rest = Array(arguments)[...]
        while let word = rest.popFirst() {
            switch word {
            case "--bus": bus = try Self.value(of: word, &rest)
            case "--truth": truth = try Self.value(of: word, &rest)
            case _ where word.hasPrefix("--"): throw .usage("unknown option '\(word)'")
            default: words.append(word)
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws(ProgramFailure) -> String {
        guard let value = rest.popFirst() else { throw .usage("\(option) needs a value") }
        return value
    }

    /// The address of a `--bus` value; `nil` for a private bus.
    static func address(_ bus: String) -> DBusAddress? {
        switch bus {
        case "private": nil
        case "system": .system
        case "session": .session
        default: .address(bus)
        }
    }
}
