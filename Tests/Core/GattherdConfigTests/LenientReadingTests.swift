import GattherdConfig
import Testing

@Suite struct LenientReadingTests {
    private func read(_ text: String) -> (configuration: Configuration, errors: [ConfigError]) {
        let source = ConfigSource(name: "gattherd.yaml", text: text)
        let environment = ConfigEnvironment(variables: [:], hostName: "lab")
        return Configuration.parseLeniently([source], in: environment, outputs: [])
    }

    @Test(arguments: [
        "devices: [{name: a\nhistory: {path: /h/x.db}\ngateway: g",
        "history:\n  path: /h/x.db\ngateway: g\ndevices: [",
        "gateway: g\ndevices:\n  - name: a\n address: b\n\thistory: x\nhistory: {path: /h/x.db}",
        "gateway: g\nhistory: {path: /h/x.db}\nlog: {level: 'info}",
        "---\ngateway: g\nhistory: {path: /h/x.db}\nmqtt: a: b\n",
    ])
    func `sections around a syntax error are read`(text: String) {
        let (configuration, errors) = read(text)
        #expect(configuration.history.path.value == "/h/x.db")
        #expect(configuration.gateway == "g")
        #expect(errors.map(\.problem.kind) == ["syntax"])
    }

    @Test func `sections around a syntax error keep their positions in the file`() {
        let (configuration, _) = read("devices: [\n\nhistory:\n  path: /h/x.db\n")
        #expect(configuration.history.path.place?.line == 4)
        #expect(configuration.history.path.place?.column == 9)
    }

    @Test func `an unclosed bracket is named by its line`() {
        let (_, errors) = read("gateway: g\ndevices: [{name: a}\n\n")
        #expect(errors.map(\.problem.description) == ["the '[' or '{' of line 2 is not closed"])
    }

    @Test func `a file of many keys is read in bounded time`() {
        let (_, errors) = read(String(repeating: "a: [\n", count: 100_000))
        #expect(errors.first?.problem.kind == "syntax")
    }
}
