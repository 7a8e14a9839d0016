import GattherdConfig
import GattherdMachines
import Testing

@Suite struct GarbageTests {
    /// Pieces of configurations, so that garbage gets past the first line.
    private static let pieces = [
        "devices:", "\n", "\n  ", "\n  - ", "name: a", "address: C0:FF:EE:00:00:01", "{", "}", "[", "]", ",", "'", "\"",
        "~",
        "${A}", "${", "$${", ":-", "mqtt: ", "url: mqtt://", "[::1]", "@", "http: {listen: ", "1.5s", "\u{1F980}", "\t",
        "&a ", "*a",
        "enrol:", "match: {", "{address}", "history: {keep: ", "99999999999999999999y", "\r\n", "\u{0}",
        "profiles: {paths: ",
    ]

    @Test(.timeLimit(.minutes(3)), arguments: 0..<20)
    func `any text gives a configuration or errors with a place`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let count = Int.random(in: 0..<40, using: &random)
            let text = (0..<count).map { _ in Self.pieces.randomElement(using: &random) ?? "" }.joined()
            for error in errors(in: text, ["A": "x"]) {
                #expect(error.place.map { $0.line >= 1 && $0.column >= 1 } == true)
                #expect(!error.description.isEmpty)
            }
        }
    }

    @Test(.timeLimit(.minutes(3)), arguments: 0..<20)
    func `any bytes give a configuration or errors`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let octets = (0..<Int.random(in: 0..<60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            for error in errors(in: [ConfigSource(name: "x", bytes: octets)]) {
                #expect(!error.description.isEmpty)
            }
        }
    }
}
