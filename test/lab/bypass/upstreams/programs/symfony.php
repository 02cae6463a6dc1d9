<?php
// The routes in Symfony's router, with its kernel's view of the request.
require '/usr/share/php/Symfony/Component/Routing/autoload.php';
require '/usr/share/php/Symfony/Component/HttpFoundation/autoload.php';

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\Routing\Exception\ExceptionInterface;
use Symfony\Component\Routing\Matcher\UrlMatcher;
use Symfony\Component\Routing\RequestContext;
use Symfony\Component\Routing\Route;
use Symfony\Component\Routing\RouteCollection;

$routes = new RouteCollection();
foreach ([
    ['/v1/reports/open', false, 'GET'],
    ['/v1/files/public', false, 'GET'],
    ['/v1/export', true, 'GET'],
    ['/v1/reports/{id}', true, 'GET'],
    ['/v1/files/{rest}', true, 'GET'],
    ['/v1/teams/{team}/jobs/{job}', true, 'POST'],
    ['/v1/Kiss/Data', true, 'GET'],
    ['/v1/my report', true, 'GET'],
    ['/v1/daily_report', true, 'GET'],
    ['/v1/data.json', true, 'GET'],
] as [$path, $paid, $method]) {
    $routes->add($path, new Route($path, ['paid' => $paid], ['rest' => '.+'], [], '', [], [$method]));
}
$request = Request::createFromGlobals();
try {
    $found = (new UrlMatcher($routes, (new RequestContext())->fromRequest($request)))->matchRequest($request);
    if ($found['paid'] ?? false) {
        file_put_contents(getenv('HITS'), 'x', FILE_APPEND);
    }
    echo 'done';
} catch (ExceptionInterface) {
    http_response_code(404);
    echo 'not found';
}
