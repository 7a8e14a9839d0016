/// A file of the dashboard, embedded in the program.
package struct DashboardFile: Sendable {
    /// The path without the leading slash; the page itself has the empty path.
    package let path: String
    /// The media type.
    package let type: String
    package let bytes: [UInt8]

    /// All files of the dashboard.
    package static let all = [
        DashboardFile(path: "", type: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        DashboardFile(path: "icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg),
        DashboardFile(path: "style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css),
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

    private static func script(_ name: String, _ bytes: [UInt8]) -> DashboardFile {
        DashboardFile(path: name + ".js", type: "text/javascript; charset=utf-8", bytes: bytes)
    }
}
