/// The streams and controls that a connected device has.
public struct DeviceDescription: Hashable, Sendable {
    public struct Stream: Hashable, Sendable {
        public var name: String
        public var metrics: [MetricDescriptor]

        public init(name: String, metrics: [MetricDescriptor]) {
            self.name = name
            self.metrics = metrics
        }
    }

    /// The device's slug.
    public var device: String
    /// The peripheral's address.
    public var address: String
    public var streams: [Stream]
    public var controls: [ControlDescriptor]

    public init(device: String, address: String, streams: [Stream], controls: [ControlDescriptor] = []) {
        self.device = device
        self.address = address
        self.streams = streams
        self.controls = controls
    }
}
