/// A file of the dashboard, which is a part of the program.
public struct DashboardFile: Sendable {
    /// Where it is found, behind the first slash; the page itself is at the empty path.
    public let path: String
    /// Its media type.
    public let type: String
    public let octets: [UInt8]

    /// All there are.
    public static let all = [
        DashboardFile(path: "", type: "text/html; charset=utf-8", octets: PackageResources.index_html),
        DashboardFile(path: "icon.svg", type: "image/svg+xml", octets: PackageResources.icon_svg),
        DashboardFile(path: "style.css", type: "text/css; charset=utf-8", octets: PackageResources.style_css),
        script("api", PackageResources.api_js),
        script("app", PackageResources.app_js),
        script("cards", PackageResources.cards_js),
        script("chart", PackageResources.chart_js),
        script("controls", PackageResources.controls_js),
        script("detail", PackageResources.detail_js),
        script("dom", PackageResources.dom_js),
        script("events", PackageResources.events_js),
        script("gateway", PackageResources.gateway_js),
        script("model", PackageResources.model_js),
        script("records", PackageResources.records_js),
        script("sparkline", PackageResources.sparkline_js),
        script("words", PackageResources.words_js),
    ]

    private static func script(_ name: String, _ octets: [UInt8]) -> DashboardFile {
        DashboardFile(path: name + ".js", type: "text/javascript; charset=utf-8", octets: octets)
    }
}
