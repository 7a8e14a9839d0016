package import GattherdBluetooth
import GattherdModel

/// Finds the new payloads in the advertisements of one device.
package struct FrameFilter: Sendable {
    private struct SentFrame: Sendable {
        let octets: [UInt8]
        let time: SuspendingClock.Instant
    }

    private var lastSent: [AdvertisedFrames.ID: SentFrame] = [:]
    private var assembly = FrameAssembly()

    package init() {}

    /// Removes the parts of multi-part frames.
    mutating func removeParts() {
        assembly = FrameAssembly()
    }

    /// Returns the payloads of an advertisement; the same bytes are new again after the frame's `renewal`.
    package mutating func payloads(
        of advertisement: HeardAdvertisement,
        _ frames: AdvertisedFrames,
        now: SuspendingClock.Instant
    ) -> [(payload: AdvertisedFrames.Payload, isNew: Bool)] {
        assembly.payloads(of: advertisement, frames, now: now).map { payload in
            if let last = lastSent[payload.frame], last.octets == payload.octets,
                now - last.time < frames[payload.frame].renewal
            {
                return (payload, false)
            }
            lastSent[payload.frame] = SentFrame(octets: payload.octets, time: now)
            return (payload, true)
        }
    }

    /// Returns the time until which repetitions of an advertisement with these payloads have no new one.
    ///
    /// The result is `nil` if they have to be looked at, because the parts of their frames have an age.
    func repetitionEnd(
        of payloads: some Sequence<AdvertisedFrames.Payload>,
        _ frames: AdvertisedFrames
    ) -> SuspendingClock.Instant? {
        guard frames.composite.isEmpty else { return nil }
        return payloads.compactMap { payload in
            lastSent[payload.frame].map { $0.time + frames[payload.frame].renewal }
        }.min()
    }
}

/// Joins the parts of one sensor's frames to payloads.
///
/// A device may send the parts of a frame in different advertisements. The newest copy of each part is used, unless it
/// is older than the frame's `renewal`.
struct FrameAssembly: Sendable {
    private struct Part: Sendable {
        let octets: [UInt8]
        let time: SuspendingClock.Instant
    }

    /// The received parts of each multi-part frame; `nil` for missing parts.
    private var parts: [AdvertisedFrames.ID: [Part?]] = [:]

    /// Returns the payloads of an advertisement; multi-part frames also contain parts of earlier advertisements.
    mutating func payloads(
        of advertisement: HeardAdvertisement,
        _ frames: AdvertisedFrames,
        now: SuspendingClock.Instant
    ) -> [AdvertisedFrames.Payload] {
        let single = advertisement.frames.compactMap { frames.payload(of: $0, name: advertisement.name) }
        let composite = frames.composite.compactMap { frame, descriptor -> AdvertisedFrames.Payload? in
            guard descriptor.admits(name: advertisement.name) else { return nil }
            return payload(of: frame, descriptor, advertisement, now)
        }
        return single + Self.chosen(composite, frames, name: advertisement.name)
    }

    /// Returns one payload of the frames that begin alike, as ``AdvertisedFrames/payload(of:name:)`` does for single
    /// parts.
    private static func chosen(
        _ payloads: [AdvertisedFrames.Payload],
        _ frames: AdvertisedFrames,
        name: String?
    ) -> [AdvertisedFrames.Payload] {
        guard payloads.count > 1 else { return payloads }
        return payloads.compactMap { payload in
            let alike = payloads.filter { frames[$0.frame].beginsLike(frames[payload.frame]) }
            guard alike.first?.frame == payload.frame else { return nil }
            let candidates = frames.profiles.indices.compactMap { position in
                candidate(of: alike.filter { $0.frame.profile == position }, frames, name: name)
            }
            return candidates.first { frames[$0.frame].admits(length: $0.octets.count) } ?? candidates.first
        }
    }

    /// Returns the payload of one profile's frames that begin alike; `nil` if only a name would tell which it is.
    private static func candidate(
        of payloads: [AdvertisedFrames.Payload],
        _ frames: AdvertisedFrames,
        name: String?
    ) -> AdvertisedFrames.Payload? {
        let fitting = payloads.filter { frames[$0.frame].admits(length: $0.octets.count) }
        guard let first = fitting.first else { return payloads.first }
        let isAmbiguous = name == nil && fitting.count > 1 && !frames[first.frame].names.isEmpty
        return isAmbiguous ? nil : first
    }

    /// Returns the joined parts; `nil` if the advertisement has none of them, or one is missing or too old.
    private mutating func payload(
        of frame: AdvertisedFrames.ID,
        _ descriptor: AdvertisementDescriptor,
        _ advertisement: HeardAdvertisement,
        _ now: SuspendingClock.Instant
    ) -> AdvertisedFrames.Payload? {
        var known = parts[frame] ?? Array(repeating: nil, count: descriptor.before.count + 1)
        var isTouched = false
        for heard in advertisement.frames {
            for (index, contents) in descriptor.parts(in: heard).enumerated() {
                guard let contents else { continue }
                known[index] = Part(octets: contents, time: now)
                isTouched = true
            }
        }
        guard isTouched else { return nil }
        parts[frame] = known
        let current = known.compactMap(\.self).filter { now - $0.time <= descriptor.renewal }
        guard current.count == known.count else { return nil }
        return AdvertisedFrames.Payload(frame: frame, octets: current.flatMap(\.octets))
    }
}

extension AdvertisementDescriptor {
    /// True if the same parts of an advertisement fit both frames.
    fileprivate func beginsLike(_ other: AdvertisementDescriptor) -> Bool {
        source == other.source && before == other.before && beginning == other.beginning
    }

    /// Returns the contents of each part in an advertisement; `nil` for parts that it does not contain.
    fileprivate func parts(in heard: HeardAdvertisement.Frame) -> [[UInt8]?] {
        before.map { $0.contents(heard.octets, from: heard.source) } + [contents(heard.octets, from: heard.source)]
    }
}
