package import GattherdModel

extension JSONWriter {
    /// Writes a member of an object, unless it has no value.
    package mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text)
    }

    package mutating func member(_ name: String, _ number: Int?) {
        guard let number else { return }
        key(name)
        integer(number)
    }
}
