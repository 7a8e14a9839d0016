package import GattherdModel

extension JSONWriter {
    /// A member of an object; none when there is no value.
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
