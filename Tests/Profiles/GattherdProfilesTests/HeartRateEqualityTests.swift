import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

/// The two kinds of profile mean the same.
struct HeartRateEqualityTests {
    private let native: any Profile
    private let declarative: any Profile

    init() throws {
        native = try Self.profile(SharedLibrary.product("HeartRate"))
        declarative = try Self.profile(SharedLibrary.root + "/Plugins/Standard/heart-rate.yaml")
    }

    private static func profile(_ path: String) throws -> any Profile {
        let registry = try ProfileRegistry.load(paths: [path])
        #expect(registry.refusals.map(\.description) == [])
        return try #require(registry.profiles.first)
    }

    @Test func `both profiles have the same descriptors`() {
        #expect(native.name == declarative.name && native.title == declarative.title)
        #expect(native.services == declarative.services)
        #expect(native.characteristics == declarative.characteristics.map(\.withoutLabels))
        #expect(native.controls == declarative.controls)
    }

    @Test func `the declarative profile passes its own tests`() {
        let results = ProfileTools.runVectors(of: declarative)
        #expect(results.count == 16)
        #expect(results.compactMap(\.failure) == [])
    }

    @Test(.timeLimit(.minutes(5)))
    func `both profiles decode or reject a million random payloads alike`() {
        let decoders = (native.makeDecoder(), declarative.makeDecoder())
        var generator = SplitMix(state: 0x2A37)
        var (left, right): ([Sample], [Sample]) = ([], [])
        var (differences, rejects) = (0, 0)
        for _ in 0..<1_000_000 {
            let characteristic = Int(truncatingIfNeeded: generator.next() % 8) % 3
            let payload = generator.payload(atMost: 20)
            left.removeAll(keepingCapacity: true)
            right.removeAll(keepingCapacity: true)
            let errors = (
                outcome(decoders.0, payload, characteristic, &left),
                outcome(decoders.1, payload, characteristic, &right)
            )
            let isSame = errors.0 == nil ? errors.1 == nil && left == right : errors.0 == errors.1
            differences += isSame ? 0 : 1
            rejects += errors.0 == nil ? 0 : 1
        }
        #expect(differences == 0)
        #expect((10_000..<900_000).contains(rejects))
    }

    /// The reason of the reject, if it is one.
    private func outcome(
        _ decoder: any PayloadDecoder,
        _ payload: [UInt8],
        _ characteristic: Int,
        _ samples: inout [Sample]
    ) -> String? {
        do throws(PayloadError) {
            try decoder.decode(payload.span, characteristic: characteristic, into: &samples)
            return nil
        } catch {
            return error.description
        }
    }
}

extension CharacteristicDescriptor {
    /// The descriptor as a native profile has it, which does not list labels.
    fileprivate var withoutLabels: Self {
        var copy = self
        for index in copy.metrics.indices {
            if case .labels = copy.metrics[index].domain { copy.metrics[index].domain = .open }
        }
        return copy
    }
}
