/// Reads the section `mqtt.home_assistant.statistics`.
struct StatisticsReader {
    let resolve: (Located<String>) -> Located<String>

    func settings(_ section: SectionReader) -> StatisticsSettings? {
        let instead = "put it into a file that only gattherd may read, and write token_file"
        section.forbid("token", .secret(key: "token", instead: instead))
        let url = section.url(Self.url, insteadOfPassword: "write token_file instead of user:password@")
        let token = section.required("token_file", .path).map { resolve($0) }
        let files = section.section("tls") { tls($0) }
        if let place = section.place(of: "tls"), let url, !url.value.usesTLS {
            let advice = "write it, or remove 'tls'"
            section.report(.conflict("'tls' needs a URL that begins with https://; \(advice)"), at: place)
        }
        guard let url, let token else { return nil }
        var settings = StatisticsSettings(url: url, tokenFile: token)
        (settings.ca, settings.certificate, settings.key) = files ?? (nil, nil, nil)
        return settings
    }

    private static var url: ConfigGrammar<ServerURL> {
        let (noun, advice) = ("the URL of Home Assistant", "write for example http://homeassistant.local:8123")
        return ConfigGrammar(noun: noun, advice: advice, shape: .pattern("^https?://")) { ServerURL($0) }
    }

    private typealias Files = (ca: Located<String>?, certificate: Located<String>?, key: Located<String>?)

    private func tls(_ section: SectionReader) -> Files {
        let (ca, certificate) = (section.value("ca", .path), section.value("certificate", .path))
        let key = section.value("key", .path)
        section.requireBoth("certificate", "key", in: "'tls'")
        return (ca.map { resolve($0) }, certificate.map { resolve($0) }, key.map { resolve($0) })
    }
}
