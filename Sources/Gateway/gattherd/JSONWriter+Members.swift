import GattherdModel

extension JSONWriter {
    /// A member of an object; none when there is no value.
    mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text)
    }

    mutating func member(_ name: String, _ number: Int?) {
        guard let number else { return }
        key(name)
        integer(number)
    }
}
