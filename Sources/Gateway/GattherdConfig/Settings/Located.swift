/// A value of the configuration and its place in the file.
///
/// Two of them are equal if their values are. A value that only moved in its file has not changed.
package struct Located<Value: Hashable & Sendable>: Sendable {
    package let value: Value
    /// The place in the file; `nil` for a default.
    package let place: ConfigPlace?

    package init(_ value: Value, at place: ConfigPlace? = nil) {
        self.value = value
        self.place = place
    }
}

extension Located: Hashable {
    package static func == (left: Self, right: Self) -> Bool { left.value == right.value }

    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
