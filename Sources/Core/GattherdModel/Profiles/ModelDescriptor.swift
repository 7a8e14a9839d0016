public import GattherdGATT

/// The advertised properties of a peripheral, by which its model is recognised; all of them are untrusted.
public struct AdvertisedTraits: Hashable, Sendable {
    /// The maximum number of bytes of a name that are compared: the longest Device Name has 248.
    private static let longestName = 248

    /// One data structure and its source.
    struct Frame: Hashable, Sendable {
        let source: AdvertisementSource
        let octets: [UInt8]
    }

    public let name: String?
    /// The services that it advertises, or whose data it advertises.
    public let services: [BluetoothUUID]
    let frames: [Frame]

    public init(
        name: String? = nil,
        services: [BluetoothUUID] = [],
        manufacturerData: [UInt16: [UInt8]] = [:],
        serviceData: [BluetoothUUID: [UInt8]] = [:]
    ) {
        self.name = name.flatMap { $0.utf8.count <= Self.longestName ? $0 : nil }
        self.services = services + serviceData.keys
        frames =
            manufacturerData.map { Frame(source: .manufacturer($0.key), octets: $0.value) }
            + serviceData.map { Frame(source: .serviceData($0.key), octets: $0.value) }
    }
}

/// A model of device that a profile serves, and the traits by which it is recognised.
public struct ModelDescriptor: Hashable, Sendable {
    public var brand: String
    public var model: String
    /// The possible local names; empty for any.
    public var names: [NamePattern] = []
    /// The data structure that the device sends; `nil` for any or none.
    public var source: SourcePattern?
    /// The first bytes of that data; `nil` for any.
    public var beginning: BytePattern?
    /// The length of that data in bytes; `nil` for any.
    public var length: ClosedRange<Int>?
    /// A service that the device advertises.
    public var service: BluetoothUUID?
    /// True if the device is recognised, or decoded, only by its scan response.
    public var needsActiveScan = false
    /// Directions to the key of its encrypted advertisements; `nil` if it needs none.
    public var key: String?

    public init(brand: String, model: String) {
        self.brand = brand
        self.model = model
    }

    /// Returns the number of bytes and characters that identify a device as this model; `nil` if it is another one.
    ///
    /// Of several models that fit, the one with the highest number is meant.
    public func weight(in traits: AdvertisedTraits) -> Int? {
        var weight = 0
        if !names.isEmpty {
            let fitting = names.filter { pattern in traits.name.map { pattern.fits($0) } ?? false }
            guard let best = fitting.map(\.literalCount).max() else { return nil }
            weight += best
        }
        if let source {
            guard traits.frames.contains(where: { admits($0.octets, from: $0.source, source) }) else { return nil }
            let identifier = source == .anyManufacturer ? 0 : 2
            weight += identifier + (beginning?.literalCount ?? 0) + (length == nil ? 0 : 1)
        }
        if let service {
            guard traits.services.contains(service) else { return nil }
            weight += 2
        }
        return weight
    }

    /// True unless the traits of the model exclude a frame.
    public func mayHave(_ frame: AdvertisementDescriptor) -> Bool {
        let sources = frame.before.map(\.source) + [frame.source]
        guard source.map({ wanted in sources.contains { $0.mayBe(wanted) } }) ?? true else { return false }
        let isAlike = names.isEmpty || frame.names.isEmpty || !Set(names).isDisjoint(with: frame.names)
        guard isAlike, let beginning else { return isAlike }
        let beginnings = zip(sources, frame.before.map(\.beginning) + [frame.beginning])
        return beginnings.contains { other, pattern in
            source.map { other.mayBe($0) } == true && pattern?.isCompatible(with: beginning) != false
        }
    }

    private func admits(_ octets: [UInt8], from other: AdvertisementSource, _ source: SourcePattern) -> Bool {
        guard let contents = source.contents(octets, from: other) else { return false }
        return beginning?.fits(contents) != false && length?.contains(contents.count) != false
    }
}

extension ModelDescriptor: CustomStringConvertible {
    /// Brand and model, for example `Govee H5075`.
    public var description: String { "\(brand) \(model)" }
}

/// The profile that serves a peripheral, and its model if that is known.
public struct Identification: Hashable, Sendable {
    public let profile: String
    /// The model, or else the profile's title.
    public let name: String
    public let model: ModelDescriptor?
    /// True if the device only advertises, and is never connected.
    public let isForAdvertisements: Bool
    /// True if only devices whose configuration names the profile use it.
    public let isOptIn: Bool

    public init(_ profile: any Profile, _ model: ModelDescriptor? = nil) {
        self.profile = profile.name
        self.model = model
        name = model?.description ?? profile.title
        isForAdvertisements = profile.isForAdvertisements
        isOptIn = profile.isOptIn || profile.isForAdvertisements
    }
}

extension Profile {
    /// True if an advertisement has the last part of a frame that the profile decodes.
    public func decodes(_ traits: AdvertisedTraits) -> Bool {
        traits.frames.contains { part in
            advertisements.contains { frame in
                // All data fits a frame of any company without a name condition.
                guard frame.source != .anyManufacturer || !frame.names.isEmpty else { return false }
                guard frame.admits(name: traits.name), let contents = frame.contents(part.octets, from: part.source)
                else { return false }
                return !frame.before.isEmpty || frame.length?.contains(contents.count) != false
            }
        }
    }
}
