/// Records the keys that a reader reads.
///
/// The readers run without values, twice: once as if each key that can be a mapping were one, and once as if none were.
/// So the reader of the configuration is also its description, and the two cannot differ.
final class SectionRecorder {
    /// The placeholder for keys that users choose.
    static let anyName = "NAME"

    /// The reply to the question whether a key has a mapping.
    let answersMapping: Bool
    private var order: [String] = []
    private var forms: [String: [ConfigKey.Form]] = [:]
    private var required: Set<String> = []
    private var sections: [String: (recorder: SectionRecorder, nesting: ConfigKey.Nesting)] = [:]

    init(answersMapping: Bool) {
        self.answersMapping = answersMapping
    }

    func record(_ key: String, _ form: ConfigKey.Form, isRequired: Bool = false) {
        add(key)
        if forms[key]?.contains(form) != true { forms[key, default: []].append(form) }
        if isRequired { required.insert(key) }
    }

    /// Returns the recorder of the section `key`.
    func section(_ key: String, _ nesting: ConfigKey.Nesting) -> SectionRecorder {
        add(key)
        if let known = sections[key] { return known.recorder }
        let recorder = SectionRecorder(answersMapping: answersMapping)
        sections[key] = (recorder, nesting)
        return recorder
    }

    /// The recorded keys.
    var keys: ConfigSectionKeys {
        var result = ConfigSectionKeys()
        result.keys = order.map { name in
            let nested = sections[name].map { ConfigKey.Form.section($0.recorder.keys, $0.nesting) }
            let forms = (forms[name] ?? []) + [nested].compactMap(\.self)
            return ConfigKey(name: name, forms: forms, isRequired: required.contains(name))
        }
        return result
    }

    private func add(_ key: String) {
        if !order.contains(key) { order.append(key) }
    }
}

extension ConfigSectionKeys {
    /// Returns the keys of both, in the order of this one, with the forms of both.
    func union(_ other: Self) -> Self {
        var result = self
        for key in other.keys {
            if let index = result.keys.firstIndex(where: { $0.name == key.name }) {
                result.keys[index].add(key)
            } else {
                result.keys.append(key)
            }
        }
        return result
    }
}

extension ConfigKey {
    fileprivate mutating func add(_ other: ConfigKey) {
        isRequired = isRequired || other.isRequired
        for form in other.forms where !forms.contains(form) {
            let index = forms.firstIndex { if case .section = $0 { true } else { false } }
            if case .section(let new, let nesting) = form, let index, case .section(let old, _) = forms[index] {
                forms[index] = .section(old.union(new), nesting)
            } else {
                forms.append(form)
            }
        }
    }
}

extension Configuration {
    /// Returns all keys that a configuration can have.
    ///
    /// - Parameter outputs: The sections of outputs.
    /// - Returns: The keys of the top level.
    package static func keys(outputs: [any OutputSectionDefinition.Type]) -> ConfigSectionKeys {
        let environment = ConfigEnvironment(variables: [:], hostName: "")
        let reader = ConfigurationReader(environment: environment, paths: PathRule(folder: ""), outputs: outputs)
        let passes = [false, true].map { answersMapping in
            let recorder = SectionRecorder(answersMapping: answersMapping)
            _ = reader.configuration(SectionReader(describing: recorder))
            return recorder.keys
        }
        return passes.dropFirst().reduce(passes[0]) { $0.union($1) }
    }
}
