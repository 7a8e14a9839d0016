/// Checks that several sections share.
extension SectionReader {
    /// Returns the value of the required key `url`, in which a password is an error.
    ///
    /// - Parameters:
    ///   - grammar: The grammar of the URL.
    ///   - instead: The advice for a URL with user information.
    /// - Returns: The value; `nil` if it is absent or invalid, which is reported.
    package func url<Value: Hashable & Sendable>(
        _ grammar: ConfigGrammar<Value>,
        insteadOfPassword instead: String
    ) -> Located<Value>? {
        let text = ConfigGrammar(noun: grammar.noun, advice: grammar.advice, shape: grammar.shape) { $0 }
        guard let url = required("url", text), let place = url.place else { return nil }
        if url.value.contains("@") {
            report(.secret(key: "url", instead: instead), at: place)
            return nil
        }
        guard let value = grammar.read(url.value) else {
            report(.invalid(url.value, expected: grammar.noun, advice: grammar.advice), at: place)
            return nil
        }
        return Located(value, at: place)
    }

    /// Reports the list `key` if it is present and has no elements, for the stated reason.
    func refuseEmpty(_ key: String, _ reason: String) {
        if isEmptyList(key), let place = self.place(of: key) { report(.conflict(reason), at: place) }
    }

    /// Reports `key` if it is present without `other`; `title` is the section's name in the error.
    package func require(_ other: String, with key: String, in title: String) {
        guard let place = self.place(of: key), self.place(of: other) == nil else { return }
        report(.missing(key: other, section: title, advice: "'\(key)' has no effect without it"), at: place)
    }

    /// Reports each of two keys that is present without the other.
    package func requireBoth(_ first: String, _ second: String, in title: String) {
        require(second, with: first, in: title)
        require(first, with: second, in: title)
    }
}
