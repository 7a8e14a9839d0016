import GattherdBluetooth
package import GattherdModel

/// The frames that the profiles of one device decode.
package struct AdvertisedFrames: Sendable {
    /// A frame, by the position of its profile and its index there.
    package struct ID: Hashable, Sendable {
        package let profile: Int
        package let index: Int
    }

    /// The bytes of a frame.
    package struct Payload: Sendable {
        package let frame: ID
        package let octets: [UInt8]
    }

    package let profiles: [any Profile]
    /// The frames of several parts.
    let composite: [(frame: ID, descriptor: AdvertisementDescriptor)]
    /// The names of the streams that an earlier profile has too.
    private let numbered: [ID: String]

    package init(_ profiles: [any Profile]) {
        self.profiles = profiles
        numbered = Self.numbered(profiles)
        composite = profiles.enumerated().flatMap { position, profile in
            profile.advertisements.enumerated().filter { !$1.before.isEmpty }.map {
                (ID(profile: position, index: $0), $1)
            }
        }
    }

    package subscript(frame: ID) -> AdvertisementDescriptor { profiles[frame.profile].advertisements[frame.index] }

    /// Returns the stream's name: that of the profile, with a number if an earlier profile has it too.
    package func stream(of frame: ID) -> String { numbered[frame] ?? self[frame].stream }

    /// The name and the metrics of the stream of each frame.
    package var streams: [(name: String, metrics: [MetricDescriptor])] {
        profiles.enumerated().flatMap { position, profile in
            profile.advertisements.enumerated().map { index, frame in
                (stream(of: ID(profile: position, index: index)), frame.metrics)
            }
        }
    }

    /// Returns the frame of one part that decodes the given bytes, with its payload.
    ///
    /// The first profile with a fitting frame for which the bytes have the right length gets them. Without one, the
    /// first fitting frame does, and its decoder rejects them.
    func payload(of part: HeardAdvertisement.Frame, name: String?) -> Payload? {
        var rejecting: Payload?
        for (position, profile) in profiles.enumerated() {
            guard let found = profile.frame(part.octets, from: part.source, name: name) else { continue }
            let payload = Payload(frame: ID(profile: position, index: found.index), octets: found.payload)
            if self[payload.frame].admits(length: payload.octets.count) { return payload }
            rejecting = rejecting ?? payload
        }
        return rejecting
    }

    private static func numbered(_ profiles: [any Profile]) -> [ID: String] {
        guard profiles.count > 1 else { return [:] }
        var (names, numbered) = (StreamNames(), [ID: String]())
        for (position, profile) in profiles.enumerated() {
            var own: [String: String] = [:]
            for (index, frame) in profile.advertisements.enumerated() {
                let name = own[frame.stream] ?? names.add(frame.stream, isFirst: true)
                own[frame.stream] = name
                if name != frame.stream { numbered[ID(profile: position, index: index)] = name }
            }
        }
        return numbered
    }
}
