/// Values by object path, found for a signal without making a string of its path.
///
/// Its lookup can be inlined: unspecialized it would be a large part of what a notification costs in this module.
public struct DBusPathTable<Value> {
    @usableFromInline var buckets: [Int: [(path: String, value: Value)]] = [:]

    public init() {}

    /// True if the table is empty.
    public var isEmpty: Bool { buckets.isEmpty }

    public subscript(path: String) -> Value? {
        get { buckets[Self.hash(path)]?.first { $0.path == path }?.value }
        set {
            let hash = Self.hash(path)
            var bucket = buckets[hash, default: []].filter { $0.path != path }
            if let newValue { bucket.append((path, newValue)) }
            buckets[hash] = bucket.isEmpty ? nil : bucket
        }
    }

    /// The value of the path that `signal` comes from.
    @inlinable
    public func value(for signal: borrowing DBusSignal) -> Value? {
        guard !buckets.isEmpty, let bucket = buckets[signal.pathHash] else { return nil }
        for index in bucket.indices where signal.isAt(bucket[index].path) { return bucket[index].value }
        return nil
    }

    private static func hash(_ path: String) -> Int {
        var path = path
        return path.withUTF8 { unsafe hash(UnsafeRawBufferPointer($0)) }
    }

    static func hash(_ octets: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        unsafe hasher.combine(bytes: octets)
        return hasher.finalize()
    }
}
