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

    package init(_ profiles: [any Profile]) {
        self.profiles = profiles
        composite = profiles.enumerated().flatMap { position, profile in
            profile.advertisements.enumerated().filter { !$1.before.isEmpty }.map {
                (ID(profile: position, index: $0), $1)
            }
        }
    }

    package subscript(frame: ID) -> AdvertisementDescriptor { profiles[frame.profile].advertisements[frame.index] }

    /// Returns the frames of one part that match the given bytes, with their payloads.
    func payloads(of part: HeardAdvertisement.Frame, name: String?) -> [Payload] {
        profiles.enumerated().compactMap { position, profile in
            profile.frame(part.octets, from: part.source, name: name).map { index, payload in
                Payload(frame: ID(profile: position, index: index), octets: payload)
            }
        }
    }
}
