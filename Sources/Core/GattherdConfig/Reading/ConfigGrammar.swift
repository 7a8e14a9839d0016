import GattherdModel

/// The grammar of a value: its description for errors, and its parser.
package struct ConfigGrammar<Value> {
    /// The name of the values with an article, for example `a duration`.
    package let noun: String
    /// The advice after an error, for example `write true or false`.
    package let advice: String
    /// The values in YAML, for schemas.
    package let shape: ConfigShape
    package let read: (String) -> Value?

    /// The kind of value, for references.
    var type: ConfigType { ConfigType(noun: noun, shape: shape) }

    /// - Parameters:
    ///   - noun: The name of the values with an article.
    ///   - advice: The advice after an error.
    ///   - shape: The values in YAML, as far as a schema can express them.
    ///   - read: Returns the value of a text; `nil` for an error.
    package init(noun: String, advice: String, shape: ConfigShape = .text, read: @escaping (String) -> Value?) {
        (self.noun, self.advice, self.shape, self.read) = (noun, advice, shape, read)
    }
}

extension ConfigGrammar where Value == String {
    package static var text: Self { ConfigGrammar(noun: "a text", advice: "write a text") { $0 } }

    /// The grammar of names that become parts of topics.
    package static var slug: Self {
        let advice = "use 1 to 64 of a-z, 0-9, '_' and '-'"
        return ConfigGrammar(noun: "a name", advice: advice, shape: .pattern("^[a-z0-9_-]{1,64}$")) {
            Slug.isValid($0) ? $0 : nil
        }
    }

    package static var path: Self {
        ConfigGrammar(noun: "a path", advice: "write the path of a file") {
            $0.isEmpty || $0.utf8.contains(0) ? nil : $0
        }
    }
}

extension ConfigGrammar where Value: CaseIterable & RawRepresentable, Value.RawValue == String {
    package static func choice(_ noun: String) -> Self {
        let words = Value.allCases.map(\.rawValue)
        let advice = "choose one of \(words.joined(separator: ", "))"
        return ConfigGrammar(noun: noun, advice: advice, shape: .choice(words)) { Value(rawValue: $0) }
    }
}

extension ConfigGrammar where Value == Bool {
    package static var boolean: Self {
        ConfigGrammar(noun: "a boolean", advice: "write true or false", shape: .boolean) {
            ["true": true, "false": false][$0]
        }
    }
}

extension ConfigGrammar where Value == Int {
    package static func integer(_ range: ClosedRange<Int>) -> Self {
        let expectation = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        let advice = "write for example \(range.upperBound)"
        return ConfigGrammar(noun: expectation, advice: advice, shape: .integer(range)) { text in
            Int(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}

extension Slug {
    /// Returns the first label of a host name as a slug.
    static func from(hostName: String) -> String {
        let label = hostName.lowercased().utf8.prefix { $0 != UInt8(ascii: ".") }.prefix(longest)
        let bytes = label.map { isAllowed($0) ? $0 : UInt8(ascii: "-") }
        return bytes.isEmpty ? "gateway" : String(decoding: bytes, as: UTF8.self)
    }
}
