/// What can be wrong with a configuration.
public enum ConfigProblem: Hashable, Sendable {
    /// The file cannot be read.
    case unreadable(reason: String)
    /// The text is not YAML.
    case syntax(String)
    case unknownKey(String, section: String, nearest: String?, known: [String])
    /// A list where a text should be, and the like.
    case wrongKind(found: String, expected: String)
    /// `advice` says what to write instead.
    case invalid(String, expected: String, advice: String)
    case missing(key: String, section: String, advice: String)
    /// A name or an address that another device has; `first` is where.
    case duplicate(String, what: String, first: String)
    /// A key that two files set; `first` is where the other one does.
    case setTwice(key: String, first: String)
    /// A secret in the text of the configuration.
    case secret(key: String, instead: String)
    case undefinedVariable(String)
    case badSubstitution
    /// Two keys that do not go together.
    case conflict(String)
    /// A profile that cannot be used, or a path that leads to none.
    case profile(String)
    /// A device whose list names a profile that is not there.
    case unknownProfile(String, nearest: String?, known: [String])
    /// A stream, a metric or a control (`what`) that no profile of the device has.
    case unknownName(String, what: String, nearest: String?, known: [String])
    /// A file that the configuration names is not there, or not what it should be.
    case file(String)
    /// A file with a secret that others can read.
    case exposedSecret(String)
}

extension ConfigProblem {
    /// A stable name for programs.
    public var kind: String {
        switch self {
        case .unreadable: "unreadable"
        case .syntax: "syntax"
        case .unknownKey: "unknown_key"
        case .wrongKind: "wrong_kind"
        case .invalid: "invalid_value"
        case .missing: "missing_key"
        case .duplicate: "duplicate"
        case .setTwice: "set_twice"
        case .secret: "secret_in_text"
        case .undefinedVariable: "undefined_variable"
        case .badSubstitution: "bad_substitution"
        case .conflict: "conflict"
        case .profile: "profile"
        case .unknownProfile: "unknown_profile"
        case .unknownName: "unknown_name"
        case .file: "unusable_file"
        case .exposedSecret: "exposed_secret"
        }
    }
}

extension ConfigProblem: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreadable(let reason): "cannot read it: \(reason)"
        case .syntax(let problem): problem
        case .unknownKey(let key, let section, let nearest, let known):
            "unknown key '\(Self.shown(key))' in \(section); " + Self.suggestion(nearest, among: known)
        case .wrongKind(let found, let expected): "this is \(found), but it must be \(expected)"
        case .invalid(let text, let expected, let advice): "'\(Self.shown(text))' is not \(expected); \(advice)"
        case .missing(let key, let section, let advice): "\(section) needs the key '\(key)'; \(advice)"
        case .duplicate(let value, let what, let first):
            "the \(what) '\(value)' is used at \(first) already; give each device its own"
        case .setTwice(let key, let first): "'\(key)' is set at \(first) already; keep one of the two"
        case .secret(let key, let instead): "'\(key)' would keep a secret in this file; \(instead)"
        case .undefinedVariable(let name):
            "the environment has no variable \(name); set it, or write ${\(name):-default}"
        case .badSubstitution:
            "not a substitution; write ${NAME} or ${NAME:-default}, or $${ for the two characters"
        case .conflict(let reason): reason
        case .profile(let reason): reason
        case .unknownProfile(let name, let nearest, let known):
            "no profile is named '\(Self.shown(name))'; " + Self.suggestion(nearest, among: known)
        case .unknownName(let name, let what, let nearest, let known):
            "no profile of the device has a \(what) '\(Self.shown(name))'; " + Self.suggestion(nearest, among: known)
        case .file(let reason): reason
        case .exposedSecret(let advice): advice
        }
    }

    /// The start of a text, fit for a terminal.
    private static func shown(_ text: String) -> String {
        var start = String.UnicodeScalarView()
        for character in text.unicodeScalars.prefix(80) {
            start.append(character.value < 0x20 || character.value == 0x7F ? "\u{FFFD}" : character)
        }
        return String(start) + (text.unicodeScalars.count > 80 ? "…" : "")
    }

    private static func suggestion(_ nearest: String?, among known: [String]) -> String {
        if let nearest { return "did you mean '\(nearest)'?" }
        if known.isEmpty { return "there is none to choose from" }
        return "choose one of \(known.joined(separator: ", "))"
    }
}
