package import GattherdGATT
package import GattherdModel

/// Operations on profiles for the command line; none needs a device.
package enum ProfileTools {
    /// Loads one file or folder as the daemon does, for `profile check`.
    package static func load(_ path: String) throws(ProfilePathError) -> ProfileRegistry {
        try ProfileRegistry.load(paths: [path])
    }

    /// True for a valid profile name.
    package static func isName(_ text: String) -> Bool { ProfileRules.isSlug(text) }

    /// Returns true if a profile takes bind keys of 16 bytes only, as native ones do.
    package static func needsCompleteKey(_ profile: any Profile) -> Bool { profile is LoadedProfile }

    /// The characteristics of a new profile without a device.
    package static var exampleCharacteristics: [SkeletonCharacteristic] {
        var values = SkeletonCharacteristic(service: 0xFFF0, uuid: 0xFFF1)
        values.notifies = true
        values.values = [[0x2A, 0x01], [0x2B, 0x01]]
        values.remarks = ["Replace the UUIDs fff0 to fff2 by those of the device."]
        var control = SkeletonCharacteristic(service: 0xFFF0, uuid: 0xFFF2)
        control.isWritable = true
        return [values, control]
    }

    /// Returns the index of a characteristic or an advertisement frame, given its stream, UUID or company.
    package static func characteristic(_ text: String, of profile: any Profile) -> Int? {
        let source = BluetoothUUID(text)?.description ?? text
        return profile.streams.firstIndex { $0.name == text }
            ?? profile.streams.firstIndex { $0.source == source || $0.source == "manufacturer \(source)" }
    }

    /// Decodes one payload as the first of a connection.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the reason of the reject.
    package static func decode(
        _ payload: [UInt8],
        characteristic: Int,
        of profile: any Profile
    ) throws(PayloadError) -> [NamedSample] {
        try decode([payload], characteristic: characteristic, of: profile)
    }

    /// Decodes the first payloads of a connection or of a sender and returns the samples of the last one.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` with the reason of the last one's reject.
    package static func decode(
        _ payloads: [[UInt8]],
        characteristic: Int,
        of profile: any Profile,
        from sender: Sender? = nil
    ) throws(PayloadError) -> [NamedSample] {
        let decoder = sender.map { profile.makeDecoder(for: $0) } ?? profile.makeDecoder()
        var samples: [Sample] = []
        let sequence = MessageSequence(payloads, profile.messages(of: characteristic)) { message in
            samples.removeAll()
            return decoder.rejection(of: message, characteristic: characteristic, into: &samples)
        }
        if let rejection = sequence.all.last?.rejection { throw rejection }
        return try [NamedSample](samples, of: profile.streams[characteristic].metrics)
    }

    /// Returns the decoders and documents with which the tests of a declarative profile were compared.
    package static func sources(of profile: any Profile) -> [String] {
        (profile as? DeclarativeProfile)?.sources ?? []
    }

    /// Runs the tests of a profile.
    package static func runVectors(of profile: any Profile) -> [VectorResult] {
        guard let profile = profile as? any TestedProfile else { return [] }
        return profile.vectors.enumerated().flatMap { index, vectors in
            vectors.map { $0.run(index, profile) }
        }
    }

    /// Runs the tests of a declarative profile's controls.
    package static func runControlVectors(of profile: any Profile) -> [ControlVectorResult] {
        guard let profile = profile as? DeclarativeProfile else { return [] }
        return profile.controlVectors.enumerated().flatMap { index, vectors in
            vectors.map { $0.run(index, profile) }
        }
    }
}

/// A sample with its metric's description.
package struct NamedSample: Hashable, Sendable {
    package let metric: MetricDescriptor
    package let value: SampleValue

    package init(metric: MetricDescriptor, value: SampleValue) {
        self.metric = metric
        self.value = value
    }
}

extension [NamedSample] {
    /// Creates the samples with the descriptions of their metrics.
    ///
    /// - Throws: ``GattherdGATT/PayloadError`` if the stream lacks a metric; the daemon then rejects the payload.
    package init(_ samples: [Sample], of metrics: [MetricDescriptor]) throws(PayloadError) {
        try samples[...].check(of: metrics)
        self = samples.map { NamedSample(metric: metrics[$0.metric], value: $0.value) }
    }
}

/// The result of one test of a profile.
package struct VectorResult: Hashable, Sendable {
    package let place: VectorPlace
    package let stream: String
    /// The payload as written.
    package let hex: String
    /// The sender; `nil` for any.
    package let sender: Sender?
    /// The decoded samples, or the reason of the reject.
    package let outcome: Result<[NamedSample], PayloadError>
    /// The difference; `nil` if the test passed.
    package let failure: String?
}

extension ProfileTools {
    /// The models that no frame of the profile decodes, because of their first bytes or their length.
    ///
    /// A model may be listed several times; one decodable entry is enough.
    package static func undecodedModels(of profile: any Profile) -> [ModelDescriptor] {
        let undecoded = profile.models.filter { !isDecoded($0, by: profile) }
        let decoded = Set(profile.models).subtracting(undecoded).map(\.description)
        return undecoded.filter { !decoded.contains($0.description) }
    }

    /// True if a frame of the profile may decode the model's data, or the profile has no frames of that source.
    private static func isDecoded(_ model: ModelDescriptor, by profile: any Profile) -> Bool {
        let isPlain = { (frame: AdvertisementDescriptor) in frame.source == model.source && frame.before.isEmpty }
        guard profile.advertisements.contains(where: isPlain) else { return true }
        return profile.advertisements.contains { frame in
            guard model.mayHave(frame) else { return false }
            guard isPlain(frame), let length = model.length else { return true }
            return frame.length?.overlaps(length) ?? true
        }
    }
}
