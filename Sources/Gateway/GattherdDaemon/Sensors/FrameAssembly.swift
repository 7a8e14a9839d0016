import GattherdBluetooth
import GattherdModel

/// Joins the parts of one sensor's frames to payloads.
///
/// A device may send the parts of a frame in different advertisements. The newest of each is kept.
struct FrameAssembly: Sendable {
    struct Payload: Sendable {
        let frame: Sensor.Frame
        let octets: [UInt8]
    }

    /// The parts of each frame of several parts; `nil` for parts that were not heard yet.
    private var parts: [Sensor.Frame: [[UInt8]?]] = [:]

    /// Returns the payloads of an advertisement; frames of several parts also contain those of earlier ones.
    mutating func payloads(of advertisement: HeardAdvertisement, _ sensor: Sensor) -> [Payload] {
        let single = advertisement.frames.flatMap { sensor.payloads(of: $0, name: advertisement.name) }
        let composite = sensor.compositeFrames.compactMap { frame, descriptor -> Payload? in
            guard descriptor.admits(name: advertisement.name) else { return nil }
            return payload(of: frame, descriptor, advertisement)
        }
        return single + composite
    }

    /// Returns the joined parts; `nil` if the advertisement has none of them, or one is still missing.
    private mutating func payload(
        of frame: Sensor.Frame,
        _ descriptor: AdvertisementDescriptor,
        _ advertisement: HeardAdvertisement
    ) -> Payload? {
        var known = parts[frame] ?? Array(repeating: nil, count: descriptor.before.count + 1)
        var isTouched = false
        for heard in advertisement.frames {
            for (index, contents) in descriptor.parts(in: heard).enumerated() where contents != nil {
                known[index] = contents
                isTouched = true
            }
        }
        guard isTouched else { return nil }
        parts[frame] = known
        let octets = known.compactMap(\.self)
        return octets.count == known.count ? Payload(frame: frame, octets: Array(octets.joined())) : nil
    }
}

extension AdvertisementDescriptor {
    /// Returns the contents of each part in a heard frame; `nil` for the parts that it is not.
    fileprivate func parts(in heard: HeardAdvertisement.Frame) -> [[UInt8]?] {
        before.map { $0.contents(heard.octets, from: heard.source) } + [contents(heard.octets, from: heard.source)]
    }
}
