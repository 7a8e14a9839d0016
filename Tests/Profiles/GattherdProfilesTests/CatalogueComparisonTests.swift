import Foundation
import GattherdGATT
import GattherdModel
import GattherdProfiles
import TestKit
import Testing

private enum Oracles {
    static let python = ProcessInfo.processInfo.environment["GATTHERD_CATALOGUE_PYTHON"]
}

/// The standard profiles beside independent decoders, on recorded and mutated payloads.
///
/// `make test-catalogue` installs the decoders and names their Python; `Tests/Catalogue` compares.
@Suite(.enabled(if: Oracles.python != nil), .timeLimit(.minutes(10)))
struct CatalogueComparisonTests {
    /// The number of mutations of each recorded payload.
    private static let mutations = 60

    @Test func `all differences from independent decoders are explained`() async throws {
        let folder = SharedLibrary.root + "/Plugins/Standard"
        let registry = try ProfileRegistry.load(paths: [folder])
        var generator = SplitMix(state: 20)
        var lines: [String] = []
        for profile in registry.profiles {
            for result in ProfileTools.runVectors(of: profile) { lines += cases(of: result, profile, &generator) }
        }
        #expect(lines.count > 5000)
        let work = try TemporaryFolder()
        let path = try work.write(lines.joined(separator: "\n") + "\n", to: "cases.jsonl")
        let script = SharedLibrary.root + "/Tests/Catalogue/compare.py"
        let errors = work.file("err")
        let (code, output) = try await Programs.run(try #require(Oracles.python), ["-B", script, path], errors: errors)
        print(output)
        let trace = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(code == 0, "\(output)\(trace)")
    }

    /// Returns a recorded payload and its mutations, as JSON.
    private func cases(
        of result: VectorResult,
        _ profile: any Profile,
        _ generator: inout SplitMix
    ) -> [String] {
        let payloads = result.hex.split(separator: ",").compactMap { Hexadecimal.octets($0) }
        let index = ProfileTools.characteristic(result.stream, of: profile) ?? 0
        guard payloads.count == 1, let recorded = payloads.first, !recorded.isEmpty else { return [] }
        let mutated = (0..<Self.mutations).map { _ in mutation(of: recorded, &generator) }
            .filter { !profile.isForAdvertisements || profile.advertisements[index].begins($0) }
        return ([recorded] + mutated).enumerated().map { number, octets in
            json(octets, index, profile, result.sender, isRecorded: number == 0)
        }
    }

    private func mutation(of recorded: [UInt8], _ generator: inout SplitMix) -> [UInt8] {
        var octets = recorded
        for _ in 0...Int(generator.next() % 3) {
            octets[Int(generator.next() % UInt64(octets.count))] = UInt8(truncatingIfNeeded: generator.next())
        }
        return octets
    }

    private func json(
        _ octets: [UInt8],
        _ index: Int,
        _ profile: any Profile,
        _ sender: Sender?,
        isRecorded: Bool
    ) -> String {
        let sender = sender ?? Sender(address: BluetoothAddress(value: 0xA4C1_3811_2233))
        let text = JSONWriter.bytes { writer in
            writer.beginObject()
            for (key, value) in [
                ("profile", profile.name), ("stream", profile.streams[index].name),
                ("payload", Hexadecimal.text(octets.span)), ("address", sender.address.description),
                ("key", sender.key.map { Hexadecimal.text($0.octets.span) } ?? ""),
            ] {
                writer.key(key)
                writer.string(value)
            }
            writer.key("recorded")
            writer.boolean(isRecorded)
            if profile.isForAdvertisements { write(profile.advertisements[index], octets, to: &writer) }
            writeOutcome(octets, index, profile, sender, to: &writer)
            writer.endObject()
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Writes the name and the parts of an advertisement with this payload.
    private func write(_ frame: AdvertisementDescriptor, _ octets: [UInt8], to writer: inout JSONWriter) {
        writer.key("name")
        writer.string(frame.names.first?.description.replacing("*", with: "0001") ?? "")
        writer.key("parts")
        writer.beginArray()
        var rest = octets[...]
        for part in frame.before {
            write(part.source, Array(rest.prefix(part.length)), to: &writer)
            rest = rest.dropFirst(part.length)
        }
        write(frame.source, Array(rest), to: &writer)
        writer.endArray()
    }

    private func write(_ source: SourcePattern, _ octets: [UInt8], to writer: inout JSONWriter) {
        var (number, data): (String, ArraySlice<UInt8>) = ("", octets[...])
        switch source {
        case .manufacturer(let company): number = "company \(company)"
        case .serviceData(let uuid): number = uuid.description
        case .manufacturers, .anyManufacturer:
            guard octets.count >= 2 else { break }
            number = "company \(UInt16(octets[0]) | UInt16(octets[1]) << 8)"
            data = octets[2...]
        }
        writer.beginArray()
        writer.string(number)
        writer.string(Hexadecimal.text(Array(data).span))
        writer.endArray()
    }

    private func writeOutcome(
        _ octets: [UInt8],
        _ index: Int,
        _ profile: any Profile,
        _ sender: Sender,
        to writer: inout JSONWriter
    ) {
        do throws(PayloadError) {
            let samples = try ProfileTools.decode([octets], characteristic: index, of: profile, from: sender)
            writer.key("values")
            writer.beginObject()
            for sample in samples {
                writer.key(sample.metric.name)
                writer.value(sample.value)
            }
            writer.endObject()
        } catch {
            writer.key("reject")
            writer.string(error.description)
        }
    }
}

extension AdvertisementDescriptor {
    /// False for a payload of another frame, which the daemon would not decode as this one.
    fileprivate func begins(_ payload: [UInt8]) -> Bool {
        var rest = payload[...]
        for part in before {
            if part.beginning?.fits(rest.prefix(part.length)) == false { return false }
            rest = rest.dropFirst(part.length)
        }
        return beginning?.fits(rest) != false
    }
}
