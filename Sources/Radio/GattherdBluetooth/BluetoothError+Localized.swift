public import FoundationEssentials

extension BluetoothError: LocalizedError {
    /// The text of `description`.
    public var errorDescription: String? { description }
}
