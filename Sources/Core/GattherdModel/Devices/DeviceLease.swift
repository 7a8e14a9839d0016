/// The lease of a device, for other programs.
public struct DeviceLease: Hashable, Sendable {
    public let device: String
    /// The state at this gateway: `owner`, `standby`, `releasing` or `alone`; a claiming gateway is a `standby`.
    public let state: String
    /// The gateway that owns the device; `nil` if none does.
    public let owner: String?
    /// The epoch of the owner, or of the last one; a control may name it.
    public let epoch: Int64
    /// False if another gateway publishes the advertisements of the device.
    public let isPublisher: Bool
    /// True if another gateway owns the device.
    public let isOwnedElsewhere: Bool

    public init(
        device: String,
        state: String,
        owner: String?,
        epoch: Int64,
        isPublisher: Bool = true,
        isOwnedElsewhere: Bool = false
    ) {
        (self.device, self.state, self.owner) = (device, state, owner)
        (self.epoch, self.isPublisher, self.isOwnedElsewhere) = (epoch, isPublisher, isOwnedElsewhere)
    }

    /// The lease as JSON.
    package var json: [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("state")
            writer.string(state)
            writer.key("owner")
            if let owner { writer.string(owner) } else { writer.null() }
            writer.key("epoch")
            writer.integer(epoch)
            writer.endObject()
        }
    }
}
