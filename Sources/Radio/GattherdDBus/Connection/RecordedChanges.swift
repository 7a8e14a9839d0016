import Glibc

/// The changes of a `PropertiesChanged` signal as they were marshalled, to recognize later signals with the same ones.
///
/// Equal changes have equal bytes, because each property begins at a multiple of eight bytes. One property, a number of
/// type `n`, may have any value.
public struct RecordedChanges: Sendable {
    /// The part of a signal that may differ from the recorded one.
    public struct Repetition: Hashable, Sendable {
        /// The new value of the variable property; `nil` if the signal does not change it.
        public let value: Int16?
        /// True if the signal changes no other property.
        public let isAlone: Bool
    }

    /// The maximum number of recorded bytes.
    private static let maximumCount = 1024

    private let interface: String
    private let variable: String
    private var entries: [UInt8] = []

    /// Records the changes of a signal.
    ///
    /// The result is `nil` for another kind of signal, for one that invalidates properties, and for very long ones.
    ///
    /// - Parameters:
    ///   - signal: The signal.
    ///   - interface: The interface that has the properties.
    ///   - variable: The property of type `n` that may have any value.
    public init?(_ signal: borrowing DBusSignal, of interface: String, variable: String) {
        guard var changes = ChangedProperties(signal.view, of: interface) else { return nil }
        (self.interface, self.variable) = (interface, variable)
        while let change = try? changes.next() {
            guard !changes.has(variable, at: change.name) else { continue }
            unsafe entries.append(contentsOf: changes.bytes(at: change.entry))
        }
        guard changes.invalidatesNothing(), entries.count <= Self.maximumCount else { return nil }
    }

    /// Compares the changes of a signal with the recorded ones; the result is `nil` if they differ.
    ///
    /// A signal that changes the variable property alone counts as a repetition.
    public func repetition(in signal: borrowing DBusSignal) -> Repetition? {
        guard var changes = ChangedProperties(signal.view, of: interface) else { return nil }
        var value: Int16?
        var position = 0
        while let change = try? changes.next() {
            if changes.has(variable, at: change.name) {
                value = changes.int16(of: change)
                guard value != nil else { return nil }
            } else {
                guard unsafe isEqual(changes.bytes(at: change.entry), at: position) else { return nil }
                position += Int(change.entry.count)
            }
        }
        guard changes.invalidatesNothing() else { return nil }
        guard position == 0 ? value != nil : position == entries.count else { return nil }
        return Repetition(value: value, isAlone: position == 0)
    }

    private func isEqual(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Bool {
        guard bytes.count <= entries.count - position, let right = bytes.baseAddress else { return false }
        return unsafe entries.withUnsafeBytes { entries in
            guard let left = entries.baseAddress else { return false }
            return unsafe memcmp(left + position, right, bytes.count) == 0
        }
    }
}
