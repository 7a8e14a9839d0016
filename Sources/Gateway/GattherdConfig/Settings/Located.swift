/// A value of the configuration and where it was written.
///
/// Two are equal when their values are: a value that only moved in its file has not changed.
public struct Located<Value: Hashable & Sendable>: Sendable {
    public let value: Value
    /// Where it stands; `nil` for a default.
    public let place: ConfigPlace?

    public init(_ value: Value, at place: ConfigPlace? = nil) {
        self.value = value
        self.place = place
    }
}

extension Located: Hashable {
    public static func == (left: Self, right: Self) -> Bool { left.value == right.value }

    public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
