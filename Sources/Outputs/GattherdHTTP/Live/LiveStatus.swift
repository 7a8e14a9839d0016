public import GattherdModel
import GattherdSync

/// The newest of everything, for onlookers: bounded, and never in anybody's way.
///
/// What changes several times between two looks is seen once.
public final class LiveStatus: Sendable {
    /// What there is.
    struct Picture: Sendable {
        var links: [String: LinkStatus] = [:]
        var descriptions: [String: DeviceDescription] = [:]
        var streams: [LiveStream] = []
        /// The last ones, oldest first.
        var events: [LifecycleEvent] = []
    }

    /// What has changed since the last look.
    struct News: Sendable {
        /// Devices have come or gone: whoever looks has to begin anew.
        var hasOtherDevices = false
        var links: [LinkStatus] = []
        /// Devices whose description has changed.
        var devices: [String] = []
        var streams: [LiveStream] = []
        var events: [LifecycleEvent] = []
    }

    private struct Shared: Sendable {
        var links: [String: LinkStatus] = [:]
        var descriptions: [String: DeviceDescription] = [:]
        var streams: [ObjectIdentifier: LiveStream] = [:]
        var events: [LifecycleEvent] = []
        var ready: [String: UInt64] = [:]
        var failures: [LinkReason: UInt64] = [:]
        var hasOtherDevices = false
        var newLinks: Set<String> = []
        var newDevices: Set<String> = []
        var newEvents = 0
    }

    /// Events that are kept.
    private static let room = 200

    private let shared = Locked(Shared())

    public init() {}

    /// Takes what was stored.
    public func observe(_ batch: ReadingBatch) {
        shared.withLock { shared in
            for reading in batch.readings {
                let key = ObjectIdentifier(reading.stream)
                if shared.streams[key]?.take(reading, batch.samples) != nil { continue }
                Self.begin(reading.stream, in: &shared.streams)
                shared.streams[key]?.take(reading, batch.samples)
            }
        }
    }

    /// A profile that was chosen anew has other metrics under the same name: the old ones go.
    private static func begin(_ stream: StreamDefinition, in streams: inout [ObjectIdentifier: LiveStream]) {
        let former = streams.filter { _, live in
            live.stream.device == stream.device && live.stream.profile == stream.profile
                && live.stream.stream == stream.stream
        }
        for key in former.keys { streams[key] = nil }
        streams[ObjectIdentifier(stream)] = LiveStream(stream)
    }

    /// All there is.
    var picture: Picture { shared.withLock { Self.picture(of: $0) } }

    /// What is new since the last call, and all there is at this moment, if that is wanted or there are other devices.
    func look(wantsPicture: Bool) -> (news: News, picture: Picture?) {
        shared.withLock { shared in
            var news = News()
            news.hasOtherDevices = shared.hasOtherDevices
            news.links = shared.newLinks.compactMap { shared.links[$0] }
            news.devices = Array(shared.newDevices)
            news.streams = shared.streams.values.filter(\.isNew)
            for stream in news.streams { shared.streams[ObjectIdentifier(stream.stream)]?.isNew = false }
            news.events = shared.events.suffix(shared.newEvents)
            shared.hasOtherDevices = false
            shared.newLinks = []
            shared.newDevices = []
            shared.newEvents = 0
            return (news, wantsPicture || news.hasOtherDevices ? Self.picture(of: shared) : nil)
        }
    }

    /// How often each device became ready, and how often links ended or failed for each reason.
    var linkCounts: (ready: [String: UInt64], failures: [LinkReason: UInt64]) {
        shared.withLock { ($0.ready, $0.failures) }
    }

    private static func picture(of shared: Shared) -> Picture {
        Picture(
            links: shared.links,
            descriptions: shared.descriptions,
            streams: Array(shared.streams.values),
            events: shared.events
        )
    }
}

extension LiveStatus: Announcer {
    public func update(_ status: LinkStatus) {
        shared.withLock { shared in
            let before = shared.links.updateValue(status, forKey: status.device)
            shared.newLinks.insert(status.device)
            shared.ready[status.device, default: 0] += 0
            if before == nil { shared.hasOtherDevices = true }
            guard before?.state != status.state else { return }
            switch status.state {
            case .ready: shared.ready[status.device, default: 0] += 1
            case .backingOff, .failed, .disconnected: shared.failures[status.reason ?? .unknown, default: 0] += 1
            case .waiting, .connecting, .discovering, .preparing, .disconnecting, .held: break
            }
        }
    }

    public func describe(_ device: DeviceDescription) {
        shared.withLock { shared in
            guard shared.descriptions[device.device] != device else { return }
            shared.descriptions[device.device] = device
            // What it does not have any more has no newest value.
            let names = Set(device.streams.map(\.name))
            shared.streams = shared.streams.filter { _, live in
                live.stream.device != device.device || names.contains(live.stream.stream)
            }
            shared.newDevices.insert(device.device)
        }
    }

    public func remove(device: String) {
        shared.withLock { shared in
            shared.hasOtherDevices = true
            shared.links[device] = nil
            shared.descriptions[device] = nil
            shared.ready[device] = nil
            shared.streams = shared.streams.filter { $0.value.stream.device != device }
        }
    }

    public func announce(_ event: LifecycleEvent) {
        shared.withLock { shared in
            shared.events.append(event)
            if shared.events.count > Self.room { shared.events.removeFirst() }
            shared.newEvents = min(shared.newEvents + 1, Self.room)
        }
    }
}
