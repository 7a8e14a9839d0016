/// One kind of mistake in a configuration.
package enum ConfigProblem: Hashable, Sendable {
    /// The file cannot be read.
    case unreadable(reason: String)
    /// The text is not YAML.
    case syntax(String)
    case unknownKey(String, section: String, nearest: String?, known: [String])
    /// A former name of a key that some version renamed.
    case renamedKey(String, new: String, version: String)
    /// A value of the wrong kind, for example a list instead of a text.
    case wrongKind(found: String, expected: String)
    /// A value that does not follow its grammar; `advice` is the correction to suggest.
    case invalid(String, expected: String, advice: String)
    case missing(key: String, section: String, advice: String)
    /// A name or an address that another device or output has; `first` is its place.
    case duplicate(String, what: String, first: String)
    /// A key that two files set; `first` is its place in the other file.
    case setTwice(key: String, first: String)
    /// A secret in the text of the configuration.
    case secret(key: String, instead: String)
    case undefinedVariable(String)
    case badSubstitution
    /// Two keys that exclude each other.
    case conflict(String)
    /// A profile that cannot be used, or a path without profiles.
    case profile(String)
    /// A profile name in a device's list that does not exist.
    case unknownProfile(String, nearest: String?, known: [String])
    /// A stream, a metric or a control (`what`) that no profile of the device has.
    case unknownName(String, what: String, nearest: String?, known: [String])
    /// A stream or a metric (`what`) that no profile of the device has, but that the device may describe itself.
    case undescribedName(String, what: String, nearest: String?)
    /// A metric of an alert that no profile has.
    case unknownMetric(String, nearest: String?)
    /// A file that the configuration names and that is missing or unusable.
    case file(String)
    /// A file with a secret that others can read.
    case exposedSecret(String)
}

extension ConfigProblem {
    /// A stable name for programs.
    package var kind: String {
        switch self {
        case .unreadable: "unreadable"
        case .syntax: "syntax"
        case .unknownKey: "unknown_key"
        case .renamedKey: "renamed_key"
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
        case .unknownName, .undescribedName, .unknownMetric: "unknown_name"
        case .file: "unusable_file"
        case .exposedSecret: "exposed_secret"
        }
    }
}

extension ConfigProblem {
    /// True for a secret in the text of the configuration.
    var isSecret: Bool { if case .secret = self { true } else { false } }
}

extension ConfigProblem: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreadable(let reason): "cannot read it: \(reason)"
        case .syntax(let problem): problem
        case .unknownKey(let key, let section, let nearest, let known):
            "unknown key '\(Self.shown(key))' in \(section); " + Self.suggestion(nearest, among: known)
        case .renamedKey(let old, let new, let version):
            "'\(old)' is '\(new)' since version \(version); run 'gattherd migrate', which changes the file"
        case .wrongKind(let found, let expected): "this is \(found), but it must be \(expected)"
        case .invalid(let text, let expected, let advice): "'\(Self.shown(text))' is not \(expected); \(advice)"
        case .missing(let key, let section, let advice): "\(section) needs the key '\(key)'; \(advice)"
        case .duplicate(let value, let what, let first):
            "the \(what) '\(value)' is used at \(first) already; give each its own"
        case .setTwice(let key, let first): "'\(key)' is set at \(first) already; keep one of the two"
        case .secret(let key, let instead): "'\(key)' would keep a secret in this file; \(instead)"
        case .undefinedVariable(let name):
            "the environment has no variable \(name); set it, or write ${\(name):-default}"
        case .badSubstitution:
            "not a substitution; write ${NAME} or ${NAME:-default}, or $${ for the two characters"
        case .conflict(let reason): reason
        case .profile(let reason): reason
        case .unknownProfile(let name, _, let known) where known.isEmpty:
            "no profile is named '\(Self.shown(name))': there are no profiles; install them, or correct profiles.paths"
        case .unknownProfile(let name, nil, let known) where known.count > Self.longestList:
            "no profile is named '\(Self.shown(name))'; choose one of: gattherd profile list"
        case .unknownProfile(let name, let nearest, let known):
            "no profile is named '\(Self.shown(name))'; " + Self.suggestion(nearest, among: known)
        case .unknownName(let name, let what, let nearest, let known):
            "no profile of the device has a \(what) '\(Self.shown(name))'; " + Self.suggestion(nearest, among: known)
        case .undescribedName(let name, let what, let nearest):
            "no profile has a \(what) '\(Self.shown(name))'; it has an effect only if the device describes it itself; "
                + (nearest.map { "did you mean '\($0)'?" } ?? "gattherd profile show PROFILE lists the \(what)s")
        case .unknownMetric(let name, let nearest):
            "no profile has the metric '\(Self.shown(name))'; only a device that describes its values itself could "
                + "raise the alert; "
                + (nearest.map { "did you mean '\($0)'?" } ?? "gattherd profile show PROFILE lists the metrics")
        case .file(let reason): reason
        case .exposedSecret(let advice): advice
        }
    }

    /// The maximum number of profiles that a message lists.
    private static let longestList = 20

    /// The first 80 characters of a text, without control characters.
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
