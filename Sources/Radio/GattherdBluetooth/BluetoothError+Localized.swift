public import FoundationEssentials

extension BluetoothError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }
}
